SELECT delay % 5 + distance FROM flights GROUP BY delay % 5
