#pragma once

#include <cstdint>
#include <string>

namespace bitfed {

// Numbers for people, with about three digits. The pages show the exact value in a tooltip.
std::string human_bytes(double bytes);      // "512 B", "48.0 KB", "1.25 MB": powers of 1000
std::string human_seconds(double seconds);  // "12.0 ms", "3.40 s", "2 min 05 s", "3 h 20 min"
std::string human_count(double count);      // "950", "12.4 k", "3.10 M"
std::string human_bit_rate(double rate);    // per second: "300 bit/s", "37.5 kbit/s"
std::string percent(double fraction);       // 0.8123 -> "81.23 %"
// A difference of fractions in percentage points: 0.0412 -> "+4.12", "-0.50", "0.00".
std::string signed_points(double difference);

// With separators: "1,234,567".
std::string exact_count(uint64_t count);

// The shortest text that reads back as the same number: "0.8123", "48000".
std::string exact_number(double value);

}  // namespace bitfed
