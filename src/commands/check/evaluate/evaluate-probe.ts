/** Evaluates the response to one GET with the token. Pure. */
import { CAUSES } from '../../../admin/verdict/causes.ts';
import { describeInterception, WEB_PAGE } from '../../../exchange/interception.ts';
import { readInsufficientScope } from '../../../exchange/token-challenge.ts';
import { isLimitField } from '../../../throttle/signals/rate-limit-signal.ts';
import { describeStatedValue, readStatedFields } from '../../../throttle/signals/stated-fields.ts';
import type { CheckFinding, NameSetting } from '../step-runner.ts';

export interface ProbeResponseHead {
  readonly status: number;
  /** The value of a header field, several lines joined by a comma. @param name in lower case */
  readonly field: (name: string) => string | undefined;
  /** The names of its header fields, in lower case. */
  readonly names: readonly string[];
}

export interface ProbeContext {
  readonly ofRoute: NameSetting;
  readonly ofCredential: NameSetting;
  /** The setting of a token that is in a file. Default: an authorization server issues the token. */
  readonly tokenFile?: string | undefined;
  /** The path of the base URL when the path of the probe begins with it again. Default: it does not. */
  readonly repeatedPath?: string | undefined;
}

/** The `error` of a challenge (RFC 6750 §3.1). */
const CHALLENGE_ERROR = /\berror\s*=\s*"?([\w-]{1,60})/i;

export function evaluateProbe(head: ProbeResponseHead, probe: ProbeContext, wallNow: number): CheckFinding {
  const { status } = head;
  const { ofRoute, ofCredential, tokenFile, repeatedPath } = probe;
  const detail = `responded with ${status}${describeLimits(head, wallNow)}`;
  const contentType = head.field('content-type');
  const warn = (advice: string): CheckFinding => ({ outcome: 'warn', detail, advice });
  if (status < 300)
    return WEB_PAGE.test(contentType ?? '')
      ? warn(
          'this is a web page: unless the path serves pages, something responds in place of the API, such as a login',
        )
      : { outcome: 'ok', detail };
  const page = status < 400 ? undefined : describeInterception({ status, statusText: '', headers: [], contentType });
  if (page !== undefined) return { outcome: 'fail', detail: `${detail}: ${page}`, advice: CAUSES.intercepted.advice };
  if (status === 401) {
    const error = CHALLENGE_ERROR.exec(head.field('www-authenticate') ?? '')?.[1];
    const source =
      tokenFile === undefined
        ? `${ofCredential('auth.audience')} and ${ofCredential('auth.scope')}`
        : `the token in the file of ${tokenFile}`;
    const advice = `the upstream does not accept this token: check ${source} with the partner; if it wants the token in another form, set ${ofRoute('upstream.tokenHeader')} and ${ofRoute('upstream.tokenPrefix')}`;
    return { outcome: 'fail', detail: error === undefined ? detail : `${detail} (${error})`, advice };
  }
  if (status === 403) return evaluateForbidden(head, detail, probe);
  if (status < 400) return warn('redirects are passed on to the application: check that it follows them');
  if (status === 404)
    return warn(
      repeatedPath === undefined
        ? `the token was not refused; check the path of ${ofRoute('upstream.baseUrl')} and of --probe`
        : `the path has ${repeatedPath} twice: leave it out of --probe and of the application's paths, or out of ${ofRoute('upstream.baseUrl')}`,
    );
  if (status === 429) return warn('the limit is reached at the first call: who else uses this client?');
  if (status >= 500)
    return { outcome: 'fail', detail, advice: CAUSES[status === 503 ? 'unavailable' : 'server_error'].advice };
  return warn('the token was not refused; the upstream expects another request than this GET');
}

function evaluateForbidden(head: ProbeResponseHead, detail: string, probe: ProbeContext): CheckFinding {
  const refusal = readInsufficientScope({
    status: 403,
    headers: ['www-authenticate', head.field('www-authenticate') ?? ''],
  });
  if (refusal === undefined) {
    const advice = `set ${probe.ofRoute('upstream.headers')} if a gateway expects a key in a header field; otherwise the token is not permitted: ask the partner which role or scope is required`;
    return { outcome: 'fail', detail, advice };
  }
  const needed = refusal.needed === undefined ? '' : `: ${refusal.needed}`;
  const advice = `add that scope to ${probe.ofCredential('auth.scope')}, and ask the partner to grant it to the client`;
  return { outcome: 'fail', detail: `${detail} (insufficient_scope${needed})`, advice };
}

function describeLimits({ field, names }: ProbeResponseHead, wallNow: number): string {
  const received = names.filter(isLimitField).map((name) => [name, field(name) ?? ''] as const);
  const fields = Object.entries(readStatedFields(received, wallNow));
  const stated = fields.map(([name, value]) => `${name}: ${describeStatedValue(value)}`);
  return stated.length === 0 ? ', no rate limit stated' : `, limits stated: ${stated.join(', ')}`;
}
