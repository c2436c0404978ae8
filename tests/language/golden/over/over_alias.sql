SELECT flight AS window_, COUNT(*) OVER () over_all FROM flights s
