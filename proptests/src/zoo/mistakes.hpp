// The mistakes that can be planted into the naive resource, one switch each.
#pragma once

#include <cstdint>

namespace granule::prop::zoo {

enum class Mistake : std::uint8_t {
  kNone,
  // References, sizes and pairs.
  kCreationReferenceKept,  // a close releases a reference of its own, never the one from the create
  kGrowReferencesKept,     // the references that a grow made are never released
  kDeleterKnowsOneRange,   // a close gives back what the buffer had before it grew in place
  kSizeRecordedUnaligned,  // a grown size is recorded as asked, and unmapped so
  kFirstHandleOverAll,     // a move maps the first chunk's handle over the whole old size
  kCapacityFreedBySize,    // addresses are freed with the buffer's size, not the reserved one
  kUnmapByGranule,         // chunks are unmapped granule by granule
  kAddressesFirst,         // addresses are freed before they are unmapped
  // Undo by hand.
  kRollbackErrorWins,          // the undo of a step is noted before the step has worked
  kRefusedProbeFreed,          // a refused probe's address is freed all the same, and is fatal
  kRollbackMapsWithoutAccess,  // a failed move maps the input again without its access
  kOldMappingGoneEarly,        // a move unmaps the input before the result is complete
  kOldRangeErrorThrown,        // after a move, trouble with the old addresses loses the new range
  kFreedUnderFailedUnmap,      // a failed unmap goes on to free the addresses and the memory
  kFailureSwallowed,           // what a destructor fails to give back is not reported
  kRecordAfterCall,            // the host record is made after the driver calls that it is for
  // Moves.
  kOldRangeFreedTwice,   // a moved range is freed by hand and again by its deleter
  kFinalizerFreesAgain,  // the same, by the destructor only
  kMoveUnmapsAtOnce,     // a move unmaps the old range under work that is queued on it
  kNeverInPlace,         // the room behind a buffer is never taken
  kProbeAligned,         // the probe behind a buffer asks for the alignment of whole ranges
  // Streams, captures, contexts.
  kCloseDoesNotWait,
  kStreamOfAllocateDropped,  // the free is ordered on the default stream instead
  kStreamLostInGrow,         // the result of a grow is
  kUsedOnIgnored,
  kHostMemoryNotWaited,    // host-located memory on a default stream is freed without a wait
  kWaitInDefaultMode,      // waits end the captures of other streams
  kImplicitCaptureUnseen,  // a default stream is waited for while a blocking stream captures
  kCloseWhileCapturing,    // an explicit close goes on although its stream captures
  kAmbientContext,         // default streams are those of whatever context is current
  // Who may use the memory.
  kNewMappingWithoutAccess,   // a moved range is mapped without access
  kPeersForgottenInPlace,     // a chunk added in place is for its owner only
  kSmallerRequestSetsAccess,  // a covered request applies its access options
  kCallOptionsStored,         // the options of one grow stay for later calls
  kEmptyAccessListSent,
  kPeersWalkedOnce,          // the list of peers is used up by the first allocation
  kOwnerListedAsPeer,        // peers named twice get two entries
  kAccessibilityByLocation,  // memory of the host is taken to be for the host alone
  // Checks of what was asked for.
  kManagedAccepted,
  kZeroSizeSent,
  kHandleTypeForHost,
  kNumaCurrentSent,
  kNodeMinusOne,
  kRdmaAttribute116,
  kRoundingWraps,
  kHandleTypePerCall,  // one grow may ask for another handle type
  kQueryErrorIgnored,
  // Identity.
  kSharedRangeMutable,  // aliases share one record, which a grow changes
  kCoveredIsInput,      // a covered grow returns its input
  // Budget, retries, wishes, suspending, clearing.
  kBudgetNotReturned,
  kGrowthNotCharged,
  kMoveChargedTwice,
  kNotReadyForever,
  kNotReadyNever,
  kFlagDroppedOnOom,
  kFlagAskedAgain,
  kResumeByHint,
  kResumeHalfWay,
  kZeroSkipped,
};

}  // namespace granule::prop::zoo
