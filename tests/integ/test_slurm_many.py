"""More Slurm jobs than are polled at a time. Slurm's commands are simulated, with outputs of the test."""

from cluster import multiply_job, played
from conftest import BIN, drop, phantom, wait_for
from test_slurm import SIZE, on_slurm, settings


def with_jobs(make, tmp_path, site, count):
    """A stopped daemon with that many READY jobs of one series. Each is submitted alone."""
    d = on_slurm(make, site, settings(site)).start()
    d.ctl("pause", "--reason", "to be filled")
    drop(phantom(tmp_path / "in", *SIZE), d.inbox / "series")
    wait_for(lambda: d.jobs("READY"), 60, "a job")
    d.stop()
    multiply_job(d, count - 1)
    return d


def test_polls_do_not_wait_for_submissions(daemon, tmp_path):
    """Every sbatch but the first waits for a squeue, or forever, like images that take long to copy."""
    first, asked, vain, calls, count = (*(tmp_path / name for name in ("first", "asked", "vain", "calls")), 100)
    site = played(tmp_path, scancel="exit 0", squeue=f"touch {asked}", sbatch=f"""
echo >>{calls}; i=0
mkdir {first} 2>{tmp_path}/words || for i in `seq 500`; do [ -e {asked} ] && break; sleep 0.1; done
[ $i != 500 ] || touch {vain}
echo $$""")
    d = with_jobs(daemon, tmp_path, site, count).start()
    d.ctl("resume")
    wait_for(lambda: calls.exists() and len(calls.read_text().splitlines()) >= count, 120, "that all are submitted")
    assert not vain.exists()
    d.kill_all()


def test_results_of_the_first_do_not_wait_for_the_others(daemon, tmp_path):
    """All jobs are reported as running, and only the first has a manifest. The daemon must find it among 299 others."""
    queue, count = tmp_path / "queue", 300
    site = played(tmp_path, squeue=f"cat {queue}", scancel="exit 0", sbatch=f"""
for each; do
    case $each in
    --comment=*) nonce=${{each#--comment=}} ;;
    */job-1.*) {BIN}/noctule run-job "$each" ;;
    esac
done
echo "$$|RUNNING|$nonce|node0|None" >>{queue}
echo $$""")
    queue.touch()
    d = with_jobs(daemon, tmp_path, site, count).start()
    d.ctl("resume")
    wait_for(lambda: len(queue.read_text().splitlines()) == count, 120, "that all are submitted")
    d.wait_jobs(1)
    assert [job["job"] for job in d.jobs("DONE")] == [1]
    d.kill_all()

