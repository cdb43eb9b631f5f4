/* Native-messaging frames over standard input and output, with as little work as possible. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGEST (64u << 20)

static unsigned char *body; /* grows to the largest frame seen */
static size_t room;

static void whole(int result)
{
    if (!result)
        _exit(0);
}

static int read_all(void *target, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = read(0, (char *)target + done, length - done);
        if (count <= 0)
            return 0;
        done += (size_t)count;
    }
    return 1;
}

static int write_all(const void *source, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = write(1, (const char *)source + done, length - done);
        if (count <= 0)
            return 0;
        done += (size_t)count;
    }
    return 1;
}

/* Returns the length of the next frame, whose bytes are in `body`; ends at the end of input. */
static uint32_t next_frame(void)
{
    uint32_t length;
    whole(read_all(&length, sizeof length));
    if (length > LARGEST)
        _exit(2);
    if (length > room) {
        body = realloc(body, length);
        if (!body)
            _exit(1);
        room = length;
    }
    whole(read_all(body, length));
    return length;
}

/* Answers with the JSON text `0`. */
static void answer(void)
{
    struct {
        uint32_t length;
        char text;
    } reply = {1, '0'};
    whole(write_all(&reply, 5));
}

#endif
