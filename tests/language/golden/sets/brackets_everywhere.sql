WITH x AS ((SELECT dest FROM flights)) (SELECT dest FROM ((SELECT * FROM x) LIMIT 3) y WHERE dest IN ((SELECT dest FROM weather)))
