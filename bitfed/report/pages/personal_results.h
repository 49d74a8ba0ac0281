#pragma once

#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

// A client's label: its person's name, "person 7" where that is a number, else "client 3".
std::string client_label(const ClientAccuracy& outcome);

// "30 people", or "10 clients" where these have no names; of a summary without client_results "its clients".
std::string counted_clients(const RunSummary& summary);

// The people's names, one per row of client_class_counts; empty where clients are not persons.
std::vector<std::string> people_of(const RunSummary& summary);

// The accuracy of the own model minus the accuracy of the global model; empty where one of them is not known.
std::optional<double> gain_of(const ClientAccuracy& outcome);

// The clients whose gain is known, the largest gain first, then by number.
std::vector<ClientAccuracy> by_gain(const std::vector<ClientAccuracy>& results);

// Up to four clients, by the accuracy of their own models, the best first: the best, the worst, and the ones
// at a third and two thirds of the ranks between them.
std::vector<ClientAccuracy> chosen_clients(const std::vector<ClientAccuracy>& results);

}  // namespace bitfed
