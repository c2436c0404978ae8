SELECT delay FROM flights f SEMI JOIN weather w ON f.dest = w.dest AND w.dest = 'ORD'
