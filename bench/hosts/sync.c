/* The floor of a synced write: like echo, and each call writes a page and fdatasyncs, twice.
 *
 * That is what a commit of LMDB asks of the disk: the changed pages, then the page that makes them
 * valid. The file lies beside the program: <program>.data, 1 MiB, written in full at start.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "frames.h"

#define PAGE 4096
#define PAGES 256

static char page[PAGE];

static void put(int file, off_t number)
{
    if (pwrite(file, page, PAGE, number * PAGE) != PAGE || fdatasync(file))
        _exit(1);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    (void)argc;
    if (snprintf(path, sizeof path, "%s.data", argv[0]) >= (int)sizeof path)
        return 1;
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0)
        return 1;
    memset(page, 'p', PAGE);
    for (off_t number = 0; number < PAGES; number++)
        if (pwrite(file, page, PAGE, number * PAGE) != PAGE)
            return 1;
    if (fsync(file))
        return 1;
    for (unsigned call = 0;; call++) {
        next_frame();
        put(file, 2 + call % (PAGES - 2));
        put(file, call % 2);
        answer();
    }
}
