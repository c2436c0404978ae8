SELECT delay FROM flights f ANTI JOIN weather w ON f.dest = w.dest WHERE dest = 'ORD'
