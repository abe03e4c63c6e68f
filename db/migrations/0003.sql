-- 0003.sql - what computes, and why nothing does.

-- Few rows: v_night.compute_waiting.
CREATE INDEX event_compute ON event (id)
    WHERE kind IN ('START', 'COMPUTE_WAITING', 'COMPUTE_READY');
