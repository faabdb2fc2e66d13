// SPDX-License-Identifier: MIT
// How the examples draw a picture, as SVG; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_PICTURE_HPP
#define PENSTOCK_EXAMPLES_PICTURE_HPP

#include <cstdio>
#include <fstream>
#include <ostream>
#include <string_view>

namespace support {

/// Rectangles and texts of kinds, whose colours `style` adds to those that all pictures have. Whole when it ends.
class Picture {
public:
    Picture(std::ostream& out, int width, int height, std::string_view title, std::string_view style) : out_(out) {
        out_ << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << width << ' ' << height << "' role='img'>\n"
             << "<title>" << title << "</title>\n"
             << "<style>\n"
             << common << style << "@media (prefers-color-scheme: dark) {\n"
             << dark << "}\n</style>\n";
        rect("paper", 0, 0, width, height);
    }

    Picture(const Picture&) = delete;
    Picture& operator=(const Picture&) = delete;
    ~Picture() { out_ << "</svg>\n"; }

    void rect(std::string_view kind, int x, int y, int w, int h) {
        out_ << "<rect class='" << kind << "' x='" << x << "' y='" << y << "' width='" << w << "' height='" << h
             << "'/>\n";
    }

    void text(std::string_view kind, int x, int y, std::string_view what) {
        out_ << "<text class='" << kind << "' x='" << x << "' y='" << y << "'>" << what << "</text>\n";
    }

private:
    static constexpr std::string_view common =
        "text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 13px; fill: #24292f }\n"
        ".title { font-size: 20px; font-weight: 600 }\n"
        ".name { font-weight: 600 }\n"
        ".middle { text-anchor: middle }\n"
        ".end { text-anchor: end }\n"
        ".paper { fill: #ffffff }\n"
        ".quiet { fill: #57606a }\n";
    static constexpr std::string_view dark = "  text { fill: #e6edf3 }\n"
                                             "  .paper { fill: #0d1117 }\n"
                                             "  .quiet { fill: #9198a1 }\n";

    std::ostream& out_;
};

/// What an example's main() does: `print()`, or with `--svg FILE` `draw(stream)`.
template <class Print, class Draw>
int print_or_draw(int argc, char** argv, const char* name, Print print, Draw draw) {
    if (argc == 1) {
        print();
        return 0;
    }
    if (argc != 3 || std::string_view(argv[1]) != "--svg") {
        std::fprintf(stderr, "usage: %s [--svg FILE]\n", name);
        return 2;
    }
    std::ofstream file(argv[2]);
    draw(file);
    file.close();
    if (!file) {
        std::fprintf(stderr, "%s: cannot write %s\n", name, argv[2]);
        return 1;
    }
    return 0;
}

}  // namespace support

#endif  // PENSTOCK_EXAMPLES_PICTURE_HPP
