/**
 * The causes of failed and delayed requests, one entry each (pure): whose fault it is, in which words, and the one setting or question that
 * helps. symptoms.ts finds the causes in the samples; the verdict shows the largest.
 */
import { ALERTS } from '../alerts/alert-table.ts';
import { adviseOnCause } from '../../platform/faults.ts';
import type { FaultCause, ForeignCause } from '../../telemetry/events.ts';
import { UPSTREAM_SETTINGS } from '../../upstream/failure.ts';

/** Who or what has to change. `limit`: demand exceeds what the partner allows. `unclear`: the headline names the candidates. */
export type VerdictPlace = 'none' | 'partner' | 'network' | 'application' | 'setting' | 'limit' | 'token' | 'unclear';

export interface Cause {
  readonly where: Exclude<VerdictPlace, 'none'>;
  /** With values in the place of `{part}`, `{code}` and the names in a symptom's `values`. */
  readonly headline: string;
  /** One sentence; settings and commands in backticks. */
  readonly advice: string;
  /** The least share of the requests that it must explain. Default: 5 %. */
  readonly minShare?: number;
  /** While it lasts, the application cannot work, however small its share is. Default false. */
  readonly isOutage?: boolean;
}

/** What an API refuses in ordinary use. */
const USUAL_SHARE = 1 / 3;

/** The name of a setting keeps its case. */
export function toSentence(text: string): string {
  const first = /^[a-z]+\.[a-z]/.test(text) ? text.charAt(0) : text.charAt(0).toUpperCase();
  return `${first}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

function blame<Name extends string>(where: Cause['where'], causes: Readonly<Record<Name, Omit<Cause, 'where'>>>) {
  const entries = Object.entries<Omit<Cause, 'where'>>(causes).map(([name, texts]) => [name, { where, ...texts }]);
  return Object.fromEntries(entries) as Readonly<Record<Name, Cause>>;
}

/** Their advice is that of the table of faults; the last fault has the one for its own case. */
function blameFaults<Name extends FaultCause>(where: Cause['where'], headlines: Readonly<Record<Name, string>>) {
  const entries = Object.entries<string>(headlines).map(([cause, headline]) => {
    const advice = toSentence(adviseOnCause(cause as Name, UPSTREAM_SETTINGS));
    return [cause, { where, headline, advice }];
  });
  return Object.fromEntries(entries) as Readonly<Record<Name, Cause>>;
}

/** By who or what has to change. */
export const CAUSES = {
  ...blameFaults('network', {
    dns: 'The host name of the partner does not resolve',
    connect_timeout: 'No connection to the partner opens in time',
    unroutable: 'There is no route to the partner',
  }),
  ...blame('network', {
    egress_proxy: {
      headline: 'The egress proxy cannot be used',
      advice: 'Check `egress.proxy` or `HTTPS_PROXY` with its user and password, and ask who runs the proxy.',
    },
    intercepted: {
      headline: 'A firewall or proxy refuses the calls',
      advice:
        "Ask the team that runs the firewall or proxy between here and the partner to allow these calls; if there is none, it is the partner's: ask whether it accepts calls from this IP address. Name time, path and status of a call under Recent calls.",
    },
    foreign_network: {
      headline: 'Something in front of the partner responds in its place',
      advice:
        'Open the address of a call under Recent calls from this machine: a captive portal, a gateway with a login page or a proxy responds to it. Ask who runs it to let these calls pass, and use `https:` in `SIDECAR_BASE_URL`.',
      isOutage: true,
    },
  }),
  ...blameFaults('partner', {
    connection_refused: 'The partner refuses connections',
    protocol: 'The responses of the partner are not accepted as HTTP/1.1',
    certificate_expired: 'The certificate of the partner has expired',
  }),
  ...blame('partner', {
    foreign_partner: {
      headline: 'The partner sends web pages or redirects instead of API responses',
      advice:
        'Give the partner the time and path of a call under Recent calls, and ask whether a login or maintenance page stands before its API, or the API has moved; a proxy that inspects TLS (`SIDECAR_CA_FILE`) may send such pages, too.',
      isOutage: true,
    },
    no_response_in_time: {
      headline: 'The partner does not respond',
      advice:
        'Give the partner the time and path of such a call; `SIDECAR_REQUEST_TIMEOUT_MS` is how long it may take.',
    },
    server_error: {
      headline: 'The partner responds {code} to {part}',
      advice: ALERTS.BearerSidecarUpstreamErrors.advice[0],
    },
    unavailable: {
      headline: 'The partner responds 503 to {part}',
      advice:
        'Ask the partner for the cause, and whether 503 is its rate limit; if so, set `SIDECAR_THROTTLE_REFUSALS=[{"status":503}]`.',
    },
    slower_than_clients: {
      headline: 'The partner does not respond before the clients leave, after about {leftAfter}',
      advice:
        'Give the partner the time and path of such a call: in the minutes before it responded in {usual}. Meanwhile let the application wait longer, if it can.',
    },
    slow: {
      headline: 'The partner is slow: {typical} for a typical response',
      advice: ALERTS.BearerSidecarUpstreamSlow.advice[0],
      minShare: 0.2,
    },
  }),
  ...blameFaults('setting', {
    certificate_untrusted: 'The certificate of the partner is not trusted here',
    client_certificate: 'The partner requires a client certificate, or another one',
  }),
  ...blame('setting', {
    stalled: {
      headline: 'The sidecar gets too little CPU or memory: it stood still for {stalled} of the time',
      advice:
        'Raise the CPU limit of the container, or use a node with less load. How quickly the partner responds is not known meanwhile.',
    },
    rate_setting: {
      headline: 'The configured rate is too low for the demand{rate}',
      advice: 'Raise `SIDECAR_RATE` as far as the partner allows, or send fewer calls.',
    },
    max_rate_setting: {
      headline: 'The configured highest rate is too low for the demand{rate}',
      advice: 'Raise `SIDECAR_THROTTLE_MAX_RATE` as far as the partner allows, or send fewer calls.',
    },
    in_flight_setting: {
      headline: 'Too few requests may be in flight for the demand: {inFlight}',
      advice: 'Raise `SIDECAR_MAX_IN_FLIGHT`, if the partner allows more calls at once.',
    },
    queue_setting: {
      headline: 'The queue is too short for the bursts of the application: {queue} places',
      advice: 'Raise `SIDECAR_QUEUE_MAX`, if the callers can wait.',
    },
    not_found: {
      headline: 'The partner responds 404 to every call',
      advice: 'Compare the path of `SIDECAR_BASE_URL` and the paths of the calls with the description of the API.',
    },
  }),
  ...blame('limit', {
    rate_limit: {
      headline: 'The rate limit of the partner is reached{rate}',
      advice: ALERTS.BearerSidecarQueueSlow.advice[0],
    },
    random_refusals: {
      headline: 'The partner refuses {refused} of the calls at any rate',
      advice: 'The sidecar repeats these calls alone, and delays no others for them. Ask the partner for the cause.',
    },
    declared_limit: {
      headline: 'A declared limit is reached{limit}',
      advice: ALERTS.BearerSidecarDeclaredLimitUsedUp.advice[0],
    },
    likely_rate_limit: {
      headline: 'Likely the rate limit of the partner: it refuses {part} with {code}',
      advice: 'If {code} is the rate limit of the partner, set `{setting}`.',
    },
  }),
  ...blame('token', {
    no_token: { headline: 'No token{of}: {failure}', advice: '{advice}', isOutage: true },
    token_refused: { headline: 'The partner does not accept the token (401)', advice: '{advice}' },
    partly_unauthorized: {
      headline: 'The partner responds 401 to {part}',
      advice:
        'Ask the partner whether these paths need another role, or one of its servers does not know the token. Where other replicas or programs use the same client, each new token may end the one before: share it with `SIDECAR_REDIS_URL`, or use one client each.',
    },
    scope_missing: {
      headline: 'The token lacks a scope that the partner requires',
      advice: ALERTS.BearerSidecarScopeMissing.advice[0],
    },
    forbidden: {
      headline: 'The partner does not permit the calls of this client (403)',
      advice:
        'See the body of such a response, then ask the partner: which role or scope this client needs, or which key in a header field (`upstream.headers`), whether a quota is used up, and whether it accepts calls from this IP address.',
    },
  }),
  ...blame('application', {
    client_error: {
      headline: 'The partner refuses requests of the application ({code}){every}',
      advice: 'Check what the application sends: the body of these responses says what is wrong.',
      minShare: USUAL_SHARE,
    },
    request_refused: {
      headline: 'The sidecar refuses requests of the application ({code})',
      advice: 'The `detail` of these responses names what is expected, and the setting that would allow it.',
    },
    unread_responses: {
      headline: 'Clients do not read their responses: {unread}',
      advice:
        'Let the application read each response to its end, or close its connection, also where the body is of no use.',
    },
    clients_leave: {
      headline: 'The clients leave before {moment}',
      advice: 'Let the application wait longer{than}.',
    },
  }),
  ...blameFaults('unclear', {
    reset_before_sent: 'Partner or network: connections are closed while they are opened',
    reset_after_sent: 'Partner or network: connections break after the request was sent{methods}',
    tls: 'Partner, network or address: the TLS handshake fails',
    certificate_not_yet_valid: 'Partner or clock here: the certificate is not valid yet',
    certificate_wrong_host: 'Partner or address: the certificate is for another host name',
    other: 'Partner or network: the connections fail',
  }),
  ...blame('unclear', {
    path_not_found: {
      headline: 'Application or partner: 404 to every call',
      advice:
        'Compare the paths of the calls with those that succeeded: `SIDECAR_BASE_URL` worked before. If they are others, the application has changed; otherwise ask the partner whether it has moved or ended this version.',
    },
    clients_leave_now: {
      headline: 'Partner or application: no response comes before the clients leave, after about {leftAfter}',
      advice:
        'Compare the time-out of the application with how long the partner takes; it is not known which of them has changed.',
    },
    response_cut: {
      headline: 'Partner or network: responses break off',
      advice:
        'Give the partner the time and path of such a call, and ask which of its servers or gateways ends these responses early.',
    },
    beyond_egress_proxy: {
      headline: 'Partner or network: the egress proxy cannot reach the partner',
      advice: 'Ask who runs the proxy whether other destinations work; if they do, ask the partner.',
    },
  }),
} satisfies Readonly<Record<FaultCause | ForeignCause, Cause>>;

export type CauseName = keyof typeof CAUSES;

/** The same address worked a moment ago, and nothing has changed here: no setting of it is wrong. */
export const ADVICE_AFTER_SUCCESS: Readonly<Partial<Record<CauseName, string>>> = {
  dns: 'The name was resolved before: ask who runs the name server of this machine or pod, then the partner, whether the name has moved.',
  connection_refused: 'The same address worked before: ask the partner whether its service runs, or has moved.',
  connect_timeout:
    'The same address worked before: ask who runs the network whether a firewall drops connections from here, and the partner whether its service runs and accepts this IP address.',
  tls: 'The same address worked before: ask the partner what has changed in its TLS, and who runs the network whether a proxy or firewall interferes.',
  certificate_wrong_host:
    'Ask the partner for a certificate with this name. The same address worked before: it has renewed the certificate without the name, or the name leads to another server now.',
  certificate_untrusted:
    'Ask the partner whether it has another certificate or authority since then, before `SIDECAR_CA_FILE` trusts it: a proxy that inspects TLS may stand in between, too.',
  reset_after_sent:
    'Ask the partner whether these calls arrived, and whether they were carried out, before they are repeated.',
};
