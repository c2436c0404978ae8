"""``python -m spark_jobs.scale_out``, and what spark-submit is given."""

from spark_jobs.scale_out.command import scale_out

if __name__ == "__main__":
    scale_out(prog_name="python -m spark_jobs.scale_out")
