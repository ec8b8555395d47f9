// Marks what a shared library shows. All else is hidden there; in a static one nothing changes.
#pragma once

#if defined(__GNUC__)
#define GRANULE_EXPORT [[gnu::visibility("default")]]
#else
#define GRANULE_EXPORT
#endif
