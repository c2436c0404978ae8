SELECT f.dest FROM flights f, weather w, planes WHERE f.dest = w.dest BEGIN NOW - 10 MINUTES END NOW
