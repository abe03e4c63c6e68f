"""Years of service in short: all users at work, and one disaster after another. Then every acknowledged instance must
have its result once.

NOCTULE_FAULT_DISASTERS is the number of disasters and NOCTULE_FAULT_SEED the seed of their order. A failure prints
both."""

import concurrent.futures
import os
import shutil
import signal
import time

from conftest import Orthanc, debian_orthanc, storescp
from disasters import Disasters, mount, unmount
from hospital import Hospital, SlowArchive, service
from invariants import check, settled

COUNT = int(os.environ.get("NOCTULE_FAULT_DISASTERS", "20"))
SEED = int(os.environ.get("NOCTULE_FAULT_SEED", "1"))
MODALITIES = 3


def repeated(d, view):
    return d.query(f"SELECT count(*) FROM {view} WHERE attempts > 1")[0][0]


def report(d, hospital, disasters, slow, seconds):
    print(f"seed {SEED}, {COUNT} disasters in {seconds:.0f} s: {dict(sorted(disasters.counts.items()))}")
    print(f"{len(hospital.promised)} instances promised, {len(hospital.corrected)} series corrected, {hospital.broken} associations broken, {hospital.lies} hostile "
          f"connections; {len(d.jobs())} jobs, {repeated(d, 'v_jobs')} of them tried again; "
          f"{repeated(d, 'v_deliveries')} deliveries tried again, {slow.associations} associations of the slow archive; "
          f"pages by status: {dict(sorted(hospital.pages.items()))}")


def keep_database(d):
    """Copies the database next to the log, because the root is unmounted with its file system."""
    for path in d.root.glob("noctule.db*") if d else ():
        shutil.copy(path, d.folder)


def test_disasters_lose_and_duplicate_no_result(tmp_path):
    folder = tmp_path / "service"
    disk = mount(folder / "root", 256 + 8 * COUNT)  # with room for all files of the run
    slow = SlowArchive()
    orthanc = Orthanc(tmp_path / "orthanc", {"Plugins": [], "DicomAlwaysAllowStore": True}, debian_orthanc())
    d = None
    try:
        with storescp(tmp_path / "archive", ["--unique-filenames"]) as archive:
            orthanc.start()
            d = service(folder, PACS=archive.port, SLOW=slow.port, ORTHANC=orthanc.port).start()
            hospital, disasters = Hospital(d, tmp_path / "sources", SEED), Disasters(d, archive, SEED, disk)
            start = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(MODALITIES + 4) as pool:
                people = [pool.submit(hospital.modality) for _ in range(MODALITIES)]
                people += [pool.submit(one) for one in (hospital.copier, hospital.corrector, hospital.stranger, hospital.reader)]
                try:
                    disasters.play(COUNT)
                    disasters.over()
                finally:
                    hospital.closing.set()
                for each in people:
                    each.result()
            settled(d)
            report(d, hospital, disasters, slow, time.monotonic() - start)
            disasters.end(signal.SIGTERM)
            check(d, hospital.promised, disasters.sessions, archive, orthanc, hospital.corrected)
    except BaseException:
        keep_database(d)
        raise
    finally:
        slow.close()
        orthanc.stop()
        if d:
            d.kill_all()
        if disk:
            unmount(folder / "root")
