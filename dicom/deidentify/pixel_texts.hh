/* pixel_texts.hh - texts beside the pixels of a de-identified copy; private to dicom/, C++. */
#ifndef NOCTULE_DICOM_DEIDENTIFY_PIXEL_TEXTS_HH
#define NOCTULE_DICOM_DEIDENTIFY_PIXEL_TEXTS_HH

#include "dicom/read/header.hh"

/*
 * Removes bytes of Pixel Data that are no pixels: native ones behind the last frame are cut off. In code streams of JPEG,
 * JPEG-LS and JPEG 2000, comments, metadata of applications, thumbnails, and bytes between two streams are overwritten with
 * blanks, so that lengths and offsets stay. Comments with only the name and version of OpenJPEG or Kakadu stay. Fragments
 * that change are held in memory. Returns false if a code stream has not the form of its standard. Throws std::bad_alloc.
 */
bool pixel_texts_remove(DcmDataset &dataset);

#endif
