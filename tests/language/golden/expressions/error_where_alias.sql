SELECT delay * 60 AS seconds FROM flights WHERE seconds > 30
