/** Finds the token endpoint through the issuer's metadata, as the sidecar does. */
import type { CredentialConfig } from '../../config/config.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { describeConnectionFault } from '../../token/endpoint/connection-fault.ts';
import { Discovery, readDocument } from '../../token/endpoint/discovery.ts';
import { sendSingleRequest } from '../../token/endpoint/single-request.ts';
import { maskQuery } from '../../platform/secret-redaction.ts';
import { createSettingNamer } from './setting-names.ts';
import type { StepResult } from './step-runner.ts';

export interface DiscoveryCheckContext {
  readonly clock: Clock;
  readonly egress: ProxySelector;
  readonly signal: AbortSignal;
}

/** The value is the URL of the token endpoint, for a client with a certificate the one for mutual TLS. */
export async function discoverTokenUrl(
  { auth, name }: CredentialConfig,
  context: DiscoveryCheckContext,
): Promise<StepResult<URL>> {
  const { endpoint, timeoutMs, caFile, clientCertificate, userAgent } = auth;
  if (endpoint.kind === 'url') return { outcome: 'ok', detail: 'not needed', value: endpoint.url };
  const advice = `check ${createSettingNamer('credential', name)('auth.issuer')}: it must be exactly the issuer in the server's metadata`;
  const discovery = new Discovery({ ...endpoint, ...context, timeoutMs, observe: () => undefined });
  const timeout = new AbortController();
  const cancel = context.clock.after(timeoutMs, () => timeout.abort());
  const signal = AbortSignal.any([context.signal, timeout.signal]);
  const get = (url: URL): ReturnType<typeof readDocument> => {
    const secureContext = url.protocol === 'https:' ? loadTlsContext(caFile, clientCertificate) : undefined;
    const headers = { Accept: 'application/json', 'User-Agent': userAgent };
    return sendSingleRequest(
      { ...context, url, method: 'GET', headers, secureContext, timeoutMs, signal },
      readDocument,
    );
  };
  try {
    const located = await discovery.locate(get, signal, signal);
    if (located.kind === 'failed') return { outcome: 'fail', detail: located.failure.detail, advice };
    const { tokenUrl, mtlsTokenUrl = tokenUrl } = located.metadata;
    const found = clientCertificate === undefined ? tokenUrl : mtlsTokenUrl;
    return { outcome: 'ok', detail: `${endpoint.issuer} names ${maskQuery(found)}`, value: found };
  } catch (error) {
    if (context.signal.aborted) throw error;
    const { host } = new URL(endpoint.issuer);
    const detail = timeout.signal.aborted
      ? `${host} sent no complete response within ${timeoutMs} ms: ${createSettingNamer('credential', name)('auth.timeoutMs')}`
      : describeConnectionFault(host, error);
    return { outcome: 'fail', detail, advice };
  } finally {
    cancel();
  }
}
