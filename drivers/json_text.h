/* Text of others in a string of JSON. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <ctype.h>
#include <string.h>

/*
 * Make a text fit for JSON: cut it at the end of its line, and at what a string would have to
 * escape. Each other control character becomes a space; MPICH 4.0 has a tab in its version.
 */
static inline void make_fit_for_json(char *text) {
    text[strcspn(text, "\n\"\\")] = '\0';
    for (; *text != '\0'; ++text)
        if (iscntrl((unsigned char)*text))
            *text = ' ';
}

#endif
