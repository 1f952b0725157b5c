// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* Elements of every kind, of any size, none included; what an assignment converts is converted. */
#include <pirn.h>
#include <string.h>

struct point {
    int x, y;
};
struct big {
    char name[300];
    long n;
};
__extension__ struct nothing {
};
union either {
    int i;
    float f;
};
enum color { RED, GREEN };
typedef void callback(int);
typedef struct point point_t;
struct opaque;

void numbers(int n, short s, char ch, size_t size);
void numbers(int n, short s, char ch, size_t size)
{
    pirn_chan(int) i = pirn_chan_make(int, n);
    pirn_chan(long) l = pirn_chan_make(long, 1);
    pirn_chan(unsigned) u = pirn_chan_make(unsigned, s);
    pirn_chan(uint8_t) u8 = pirn_chan_make(uint8_t, 1u);
    pirn_chan(size_t) z = pirn_chan_make(size_t, sizeof(int));
    pirn_chan(double) d = pirn_chan_make(double, size);
    pirn_chan(float) f = pirn_chan_make(float, true);
    pirn_chan(bool) b = pirn_chan_make(bool, 0);
    pirn_chan(enum color) e = pirn_chan_make(enum color, GREEN);
    pirn_chan_send(i, 1);
    pirn_chan_send(i, s);
    pirn_chan_send(i, ch);
    pirn_chan_send(l, n);
    pirn_chan_send(u, 7);
    pirn_chan_send(u8, 255);
    pirn_chan_send(z, sizeof n);
    pirn_chan_send(z, 3);
    pirn_chan_send(d, 2.5);
    pirn_chan_send(d, n);
    pirn_chan_send(d, 1);
    pirn_chan_send(f, 1.5f);
    pirn_chan_send(b, n > 1);
    pirn_chan_send(b, true);
    pirn_chan_send(e, RED);
    n = pirn_chan_get(i) + pirn_chan_get(u8);
    d = pirn_chan_retain(d);
}

void pointers(struct point *p, const char *name, int *array);
void pointers(struct point *p, const char *name, int *array)
{
    pirn_chan(const char *) names = pirn_chan_make(const char *, 1);
    pirn_chan(void *) any = pirn_chan_make(void *, 1);
    pirn_chan(struct point *) points = pirn_chan_make(struct point *, 1);
    pirn_chan(const struct point *) fixed = pirn_chan_make(const struct point *, 1);
    pirn_chan(struct opaque *) opaque = pirn_chan_make(struct opaque *, 1);
    pirn_chan(callback *) calls = pirn_chan_make(callback *, 1);
    pirn_chan(void (*)(int)) same_calls = calls;
    pirn_chan(int *) ints = pirn_chan_make(int *, 1);
    pirn_chan_send(names, "literal");
    pirn_chan_send(names, name);
    pirn_chan_send(names, NULL);
    pirn_chan_send(names, 0);
    pirn_chan_send(any, p);
    pirn_chan_send(any, &any);
    pirn_chan_send(points, p);
    pirn_chan_send(points, (void *)array);
    pirn_chan_send(fixed, p);
    pirn_chan_send(opaque, NULL);
    pirn_chan_send(same_calls, NULL);
    pirn_chan_send(ints, array);
    pirn_chan_send(ints, &p->x);
    (void)pirn_chan_recv(points, &p);
    (void)pirn_chan_recv(names, &name);
    *pirn_chan_get(ints) = pirn_chan_get(points)->x + (int)strlen(pirn_chan_get(names));
}

void aggregates(struct point p, union either u, int (*four)[4]);
void aggregates(struct point p, union either u, int (*four)[4])
{
    pirn_chan(point_t) points = pirn_chan_make(struct point, 1);
    pirn_chan(struct big) bigs = pirn_chan_make(struct big, 1);
    pirn_chan(union either) unions = pirn_chan_make(union either, 1);
    pirn_chan(struct nothing) signals = pirn_chan_make(struct nothing, 1);
    pirn_chan(int[4]) arrays = pirn_chan_make(int[4], 1); /* to be received only */
    struct nothing nothing;
    struct big big = pirn_chan_get(bigs);
    memset(&nothing, 0, sizeof nothing);
    pirn_chan_send(points, p);
    pirn_chan_send(points, ((struct point){1, 2}));
    pirn_chan_send(points, (point_t){.y = 1});
    pirn_chan_send(bigs, big);
    pirn_chan_send(unions, u);
    pirn_chan_send(signals, nothing);
    (void)pirn_chan_recv(signals, &nothing);
    nothing = pirn_chan_get(signals);
    (void)pirn_chan_recv(arrays, four);
    (void)pirn_select(PIRN_SEND(points, p), PIRN_SEND(bigs, big), PIRN_SEND(unions, u),
                      PIRN_SEND(signals, nothing), PIRN_RECV(arrays, four),
                      PIRN_RECV(signals, &nothing));
    p.x = pirn_chan_get(points).y;
}
