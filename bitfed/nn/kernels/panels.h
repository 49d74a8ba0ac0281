#pragma once

#include <algorithm>
#include <cstddef>

namespace bitfed {

// Products take their right side in panels of this many columns, the rows of a panel contiguous: the rows of
// a wide matrix are a power of two apart, and fall into a few of the cache's sets.
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

// The panel of `rows` rows of `columns` values, copied to `to`; or `from`, if its rows are the panel.
template <typename Number>
const Number* copy_panel(const Number* from, size_t rows, size_t columns, const Panel& panel, Number* to) {
  if (panel.width == columns) return from;
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(from + r * columns + panel.first, panel.width, to + r * panel.width);
  return to;
}

}  // namespace bitfed
