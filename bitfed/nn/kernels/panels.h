#pragma once

#include <algorithm>
#include <cstddef>

namespace bitfed {

// Products take their right side in panels of so many columns, the rows of each one behind the other: the
// rows of a whole wide one are a power of two apart, and crowd into a few of the cache's sets.
inline constexpr size_t kPanelColumns = 64;

struct Panel {
  size_t first;
  size_t width;
};

template <typename Work>
void for_each_panel(size_t columns, const Work& work) {
  for (size_t first = 0; first < columns; first += kPanelColumns)
    work(Panel{first, std::min(kPanelColumns, columns - first)});
}

// Of rows of `columns` numbers each; in `to`, unless they are a panel already.
template <typename Number>
const Number* copy_panel(const Number* from, size_t rows, size_t columns, const Panel& panel, Number* to) {
  if (panel.width == columns) return from;
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(from + r * columns + panel.first, panel.width, to + r * panel.width);
  return to;
}

}  // namespace bitfed
