SELECT s.v, u.v AS other FROM s [RANGE 10 SECONDS] ASOF JOIN u ON s.k = u.k AND s.ts >= u.ts
