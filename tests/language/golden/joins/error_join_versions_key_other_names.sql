SELECT 1 FROM weather w JOIN fares fa(a, b, c, d) ON a = w.dest
