// What the commands take from the environment: folders, addresses and keys. Read anew at each call.
#pragma once

#include <string>

namespace tercet::app {

// TERCET_MODELS, else $XDG_CACHE_HOME/tercet/models, else ~/.cache/tercet/models. Need not exist.
std::string models_folder();

// $XDG_STATE_HOME/tercet, else ~/.local/state/tercet: the chat's history. Need not exist.
std::string state_folder();

// HF_ENDPOINT, else the public hub's.
std::string hub_endpoint();

// TERCET_API_KEY, or "".
std::string api_key();

// HF_TOKEN, or "".
std::string hub_token();

}  // namespace tercet::app
