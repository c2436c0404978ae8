SELECT f.dest, g.dest FROM flights f CROSS JOIN flights g WHERE f.ts < g.ts
