/** Asks an issuer for its metadata as the token endpoint's own discovery does, and says where tokens are asked for. */
import type { CredentialConfig } from '../../config/config.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { describeConnectionFault } from '../../token/endpoint/connection-fault.ts';
import { Discovery, readDocument } from '../../token/endpoint/discovery.ts';
import { sendSingleRequest } from '../../token/endpoint/single-request.ts';
import { createSettingNamer } from './setting-names.ts';
import type { StepResult } from './step-runner.ts';

export interface DiscoveryCheckContext {
  readonly clock: Clock;
  readonly egress: ProxySelector;
  readonly signal: AbortSignal;
}

/** The value is the URL of the token endpoint, for a client with a certificate the one that is for such clients. */
export async function discoverTokenUrl(
  { auth, name }: CredentialConfig,
  terms: DiscoveryCheckContext,
): Promise<StepResult<URL>> {
  const { endpoint, timeoutMs, caFile, clientCertificate } = auth;
  if (endpoint.kind === 'url') return { outcome: 'ok', detail: 'not needed', value: endpoint.url };
  const advice = `check ${createSettingNamer('credential', name)('auth.issuer')}: it must be exactly what the server calls itself`;
  const discovery = new Discovery({ ...endpoint, ...terms, timeoutMs, observe: () => undefined });
  const late = new AbortController();
  const cancel = terms.clock.after(timeoutMs, () => late.abort());
  const signal = AbortSignal.any([terms.signal, late.signal]);
  const get = (url: URL): ReturnType<typeof readDocument> => {
    const secureContext = url.protocol === 'https:' ? loadTlsContext(caFile, clientCertificate) : undefined;
    const headers = { Accept: 'application/json' };
    return sendSingleRequest({ ...terms, url, method: 'GET', headers, secureContext, timeoutMs, signal }, readDocument);
  };
  try {
    const located = await discovery.locate(get, signal, signal);
    if (located.kind === 'failed') return { outcome: 'fail', detail: located.failure.detail, advice };
    const { tokenUrl, mtlsTokenUrl = tokenUrl } = located.metadata;
    const found = clientCertificate === undefined ? tokenUrl : mtlsTokenUrl;
    return { outcome: 'ok', detail: `${endpoint.issuer} names ${found.href}`, value: found };
  } catch (error) {
    if (terms.signal.aborted) throw error;
    const { host } = new URL(endpoint.issuer);
    const detail = late.signal.aborted
      ? `${host} gave no whole answer within ${timeoutMs} ms`
      : describeConnectionFault(host, error);
    return { outcome: 'fail', detail, advice };
  } finally {
    cancel();
  }
}
