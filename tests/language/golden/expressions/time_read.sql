SELECT TO_TIMESTAMP(carrier) AS a, TO_TIMESTAMP(carrier, 'yyyy-MM-dd HH:mm') AS b, TO_DATE(carrier, 'DD.MM.YYYY') AS c, STRPTIME(carrier, '%d/%m/%y') AS d, TO_DATE(ts) AS e FROM flights
