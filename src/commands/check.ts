/**
 * `bearer-sidecar check`: would it work? Validates the configuration, fetches one token and opens a connection to the
 * upstream, and says in a line each what it found. No call of the partner's API is made, and no secret is printed.
 */
import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { loadConfig, type LoadOptions } from '../config/load.ts';
import { formatProblems, formatWarnings } from '../config/problems.ts';
import { trustContext } from '../tls.ts';
import { createTokenEndpoint } from '../token/token-endpoint.ts';
import { describeConnectFailure, timeoutFailure } from '../upstream/failure.ts';

interface Finding {
  readonly ok: boolean;
  readonly subject: string;
  readonly words: string;
}

/** @returns 0 when all is well, 1 when something was found, 2 for invalid settings */
export async function check(load: LoadOptions, stop: AbortSignal): Promise<number> {
  const loaded = loadConfig(load);
  process.stderr.write(formatWarnings(loaded.warnings));
  if (!loaded.ok) {
    process.stderr.write(formatProblems(loaded.problems));
    return 2;
  }
  const { config } = loaded;
  const findings = [
    { ok: true, subject: 'configuration', words: 'valid' },
    ...(await Promise.all([checkToken(config, stop), checkUpstream(config, stop)])),
  ];
  for (const { ok, subject, words } of findings) {
    process.stdout.write(`${ok ? 'ok   ' : 'FAULT'}  ${subject.padEnd(14)} ${words}\n`);
  }
  return findings.every(({ ok }) => ok) ? 0 : 1;
}

async function checkToken({ auth }: Config, stop: AbortSignal): Promise<Finding> {
  const startedAt = performance.now();
  const endpoint = createTokenEndpoint({ ...auth, clock: systemClock });
  const answer = await endpoint.requestToken(stop);
  const took = `${String(Math.round(performance.now() - startedAt))} ms`;
  const subject = 'token';
  if (answer.kind === 'ok') {
    const scope = answer.scope === undefined ? 'scope not stated' : `scope ${answer.scope}`;
    const life = `${String(Math.round(answer.lifetimeMs / 1000))} s`;
    return { ok: true, subject, words: `obtained from ${auth.tokenUrl.href} in ${took}, valid for ${life}, ${scope}` };
  }
  const advice =
    answer.kind === 'rejected'
      ? 'the server knows the request and says no: check client id, secret, audience and scope'
      : 'the server was not reached or did not answer as a token endpoint: check SIDECAR_AUTH_URL and the network';
  return { ok: false, subject, words: `${auth.tokenUrl.href}: ${answer.detail}; ${advice}` };
}

async function checkUpstream({ upstream }: Config, stop: AbortSignal): Promise<Finding> {
  const { baseUrl, connectTimeoutMs } = upstream;
  const subject = 'upstream';
  const startedAt = performance.now();
  const isTls = baseUrl.protocol === 'https:';
  const host = baseUrl.hostname.replace(/^\[|\]$/g, '');
  const port = Number(baseUrl.port || (isTls ? 443 : 80));
  let socket: net.Socket | undefined;
  try {
    const servername = net.isIP(host) === 0 ? { servername: host } : {};
    socket = isTls
      ? tls.connect({ host, port, secureContext: trustContext(upstream.caFile), ...servername })
      : net.connect({ host, port });
    const signal = AbortSignal.any([stop, AbortSignal.timeout(connectTimeoutMs)]);
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal });
    const took = `${String(Math.round(performance.now() - startedAt))} ms`;
    return { ok: true, subject, words: `${baseUrl.host} reached in ${took}, ${describeChannel(socket)}` };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'AbortError';
    const { detail } = isLate ? timeoutFailure(connectTimeoutMs) : describeConnectFailure(error);
    return { ok: false, subject, words: `${baseUrl.host}: ${detail}; check SIDECAR_BASE_URL and the network` };
  } finally {
    socket?.destroy();
  }
}

function describeChannel(socket: net.Socket): string {
  if (!(socket instanceof tls.TLSSocket)) return 'without TLS';
  return `${socket.getProtocol() ?? 'TLS'}, certificate valid until ${socket.getPeerCertificate().valid_to}`;
}
