DROP QUERY alerts, others
