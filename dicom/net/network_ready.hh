/*
 * network_ready.hh - DCMTK's network layer made ready once for the process; private to dicom/, C++.
 *
 * Its own first-time initialisation is not safe from two threads. SIGPIPE is ignored from here on.
 */
#ifndef NOCTULE_DICOM_NETWORK_READY_HH
#define NOCTULE_DICOM_NETWORK_READY_HH

/* Comes before any other call of that layer, from any thread. */
void network_ready();

#endif
