#pragma once
// Where the wrong elements of an output lie, as a picture and as text.
#include <string>

#include "harness/model/record.h"
#include "templates/blocks.h"

namespace capstone {

/// The map of a diagnosis. Only the cells that diagnose() draws are taken over, at most kMapLines lines of
/// kMapColumns: a ledger may hold anything. A diagnosis without a map gives a block without lines.
MapBlock map_of(const Diagnosis& diagnosis);

/// As an inline <svg>, coloured by page.css. In-page text for screen readers is its label.
std::string svg_of(const MapBlock& map);

/// As lines of characters, as in the terminal.
std::string text_of(const MapBlock& map);

}  // namespace capstone
