-- What leaves the window of two minutes, of connections that were answered and that nobody has acknowledged.
DSTREAM(
    SELECT s.src, s.dst
    FROM packet [RANGE 2 MINUTES] s
    SEMI JOIN packet [RANGE 2 MINUTES] a ON a.src = s.dst AND a.dst = s.src AND a.flags = 'SYN-ACK'
    ANTI JOIN packet [RANGE 2 MINUTES] d ON d.src = s.src AND d.dst = s.dst AND d.flags = 'ACK'
    WHERE s.flags = 'SYN'
)
