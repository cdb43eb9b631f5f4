/* The floor of the pipe: a host that does nothing but read and answer frames.
 *
 * An array is sent back as it is: what a batch and its answer cost at least, when both are as long.
 * Every other message is a JSON string whose first letter says what to do:
 *   "e…"      answer at once with 0
 *   "dNNN"    answer with NNN bytes in frames of 256 KiB (JSON strings), then with 0
 *   "wNNN"    the same with a window: each frame is acknowledged by any message of the other side,
 *             and at most 16 are unacknowledged (flooding is slower in Chromium)
 *   "u…"      take it and be silent (a piece of a big upload)
 *   "U…"      the same, the last piece: answer with 0
 */
#include <string.h>

#include "frames.h"

#define PIECE (256u << 10)
#define WINDOW 16

static void send_down(size_t left, int window)
{
    int flying = 0;
    static unsigned char frame[sizeof(uint32_t) + PIECE];
    memset(frame, 'x', sizeof frame);
    while (left) {
        uint32_t length = left < PIECE ? (uint32_t)left : PIECE;
        if (length < 2)
            length = 2;
        memcpy(frame, &length, sizeof length);
        frame[4] = '"';
        frame[4 + length - 1] = '"';
        for (; window && flying >= window; flying--)
            next_frame();
        whole(write_all(frame, sizeof length + length));
        flying++;
        left -= length < left ? length : left;
    }
    for (; window && flying; flying--)
        next_frame();
}

int main(void)
{
    for (;;) {
        uint32_t length = next_frame();
        unsigned char mode = length > 1 ? body[1] : 'e';
        if (length && body[0] == '[') {
            whole(write_all(&length, sizeof length));
            whole(write_all(body, length));
            continue;
        }
        if (mode == 'u')
            continue;
        if (mode == 'd' || mode == 'w') {
            size_t size = 0;
            for (uint32_t at = 2; at < length && body[at] >= '0' && body[at] <= '9'; at++)
                size = size * 10 + (body[at] - '0');
            send_down(size, mode == 'w' ? WINDOW : 0);
        }
        answer();
    }
}
