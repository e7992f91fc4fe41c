/** What a response head is as evidence for a rate limit that no setting names. The evidence itself is in throttle/refusal-evidence. */
import type { AttemptSign } from '../throttle/refusal-evidence/refusal-evidence.ts';
import { signOfResponse } from '../throttle/refusal-evidence/refusal-observer.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import type { ResponseClassification } from './response-classifier.ts';
import { readInsufficientScope } from './insufficient-scope.ts';

/** A refusal that states a limit or a missing scope is no evidence: it says itself what it is. */
export function signOfHead(
  head: UpstreamResponse,
  { permitReport, isRateLimited, statedWaitMs }: ResponseClassification,
): AttemptSign {
  const isStated =
    isRateLimited || permitReport.kind === 'rate-limited' || (head.status >= 400 && statedWaitMs !== undefined);
  return signOfResponse(head.status, isStated || readInsufficientScope(head) !== undefined);
}
