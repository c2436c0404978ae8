SELECT x FROM flights f, LATERAL (VALUES (f.flight), (f.dest)) t (x)
