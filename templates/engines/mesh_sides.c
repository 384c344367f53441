/* How many ranks a mesh has along each side. */
#include "mesh_sides.h"

/* The two sides of the rectangle of n points that is nearest to a square; 1 and n if n is prime. */
static void rectangle(int n, int *sides) {
    sides[0] = 1;
    for (int divisor = 2; divisor * divisor <= n; ++divisor)
        if (n % divisor == 0)
            sides[0] = divisor;
    sides[1] = n / sides[0];
}

static void box(int p, int *sides) {
    sides[0] = 1;
    rectangle(p, &sides[1]);
    for (int x = 2; x * x * x <= p; ++x) {
        int yz[2];
        rectangle(p / x, yz);
        if (p % x != 0 || x + yz[0] + yz[1] >= sides[0] + sides[1] + sides[2])
            continue;
        sides[0] = x;
        sides[1] = yz[0];
        sides[2] = yz[1];
    }
}

void coll_mesh_sides(int p, int dimensions, int *sides) {
    if (dimensions == 2)
        rectangle(p, sides);
    else
        box(p, sides);
}
