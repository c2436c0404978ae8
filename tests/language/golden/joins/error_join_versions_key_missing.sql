SELECT fare FROM weather w JOIN fares fa ON fa.dest = w.dest
