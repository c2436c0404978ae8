-- Published as a DSTREAM of what leaves a window of two minutes: here what the window before the last holds.
SELECT s.src, s.dst
FROM (SELECT * FROM packet BEGIN NOW - 4 MINUTES END NOW - 2 MINUTES) s
SEMI JOIN packet [RANGE 4 MINUTES] a ON a.src = s.dst AND a.dst = s.src AND a.flags = 'SYN-ACK'
ANTI JOIN packet [RANGE 4 MINUTES] d ON d.src = s.src AND d.dst = s.dst AND d.flags = 'ACK'
WHERE s.flags = 'SYN'
