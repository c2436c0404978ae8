SELECT COUNT(*) AS n FROM flights GROUP BY 'carrier'
