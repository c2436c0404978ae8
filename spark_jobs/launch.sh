# Read by the shell that starts the driver's JVM. A SIGTERM that goes to the whole process group, as a service
# manager sends it, is the job's: its JVM lives until the micro-batch is done, and ends with the job in any case.
trap '' TERM
