SELECT f.delay, p.seats FROM flights f JOIN weather w ON f.dest = w.dest JOIN weather v ON f.dest = v.dest LEFT JOIN planes p ON f.flight = p.flight WHERE v.dest IN ('ORD', 'SFO') AND f.flight = 7
