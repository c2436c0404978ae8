-- The examples requests_* are those of the paper of 2003, as they stand there: Motwani et al., CIDR 2003, section 2.1.
SELECT COUNT(*)
FROM Requests S [Range 1 Day Preceding]
WHERE S.domain = 'stanford.edu'
