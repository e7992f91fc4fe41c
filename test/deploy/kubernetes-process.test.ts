/**
 * Where the manifests' promises meet the process: the sidecar with the variables, files and probes of a rendered manifest, asked
 * from inside the pod (loopback) and from outside of it (another address).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call, post } from '../support/calls.ts';
import { nonLoopbackAddress, startContainer } from '../support/container-process.ts';
import { kustomizeExample } from '../support/kustomize.ts';
import { freePort } from '../support/loopback.ts';
import { podsOf, sidecarOf } from '../support/pods.ts';
import type { Pod } from '../support/pods.ts';
import { waitUntil } from '../support/until.ts';

async function startExample(name: string, secrets: Readonly<Record<string, Readonly<Record<string, string>>>> = {}) {
  const objects = kustomizeExample(name);
  const pod = podsOf(objects).find((candidate) => sidecarOf(candidate) !== undefined)!;
  const container = sidecarOf(pod)!;
  const running = await startContainer({ name: `kubernetes-${name}`, objects, pod, container, secrets });
  const inside = `http://127.0.0.1:${String(running.adminPort)}`;
  const outside = `http://${nonLoopbackAddress()}:${String(running.adminPort)}`;
  return { ...running, pod, container, inside, outside };
}

async function untilReady(adminUrl: string): Promise<void> {
  await waitUntil(async () => (await call(`${adminUrl}/readyz`)).status === 200, 'it is ready');
}

describe('native', () => {
  it('only the probes and the metrics are reachable from outside', async () => {
    await using pod = await startExample('native');
    const { container, inside, outside, proxyPort, upstream } = pod;
    // As soon as it listens, before a token is there.
    for (const { httpGet } of [container.startupProbe!, container.livenessProbe!])
      expect((await call(`${outside}${httpGet!.path}`)).status).toBe(200);
    await untilReady(outside);
    expect((await call(`${outside}/metrics`)).text).toContain('bearer_sidecar_build_info');
    for (const path of ['/status', '/', '/quitquitquit']) expect((await call(`${outside}${path}`)).status).toBe(403);
    expect((await call(`${inside}/status`)).status).toBe(200);

    expect((await post(`http://localhost:${String(proxyPort)}/quotes`, { a: 1 })).status).toBe(200);
    expect(upstream.requests[0]?.headers.authorization).toMatch(/^Bearer /);
    await expect(call(`http://${nonLoopbackAddress()}:${String(proxyPort)}/quotes`)).rejects.toThrow('ECONNREFUSED');
    expect(await pod.process.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});

describe('standalone', () => {
  it('serves only pods that send the header field, by the name of the Service', async () => {
    const key = 'value-of-the-required-field';
    await using pod = await startExample('standalone', { 'bearer-sidecar-callers': { 'header-value': key } });
    await untilReady(pod.outside);
    const url = `http://${nonLoopbackAddress()}:${String(pod.proxyPort)}/quotes`;
    const ask = async (headers: Record<string, string>) => (await post(url, {}, headers)).status;
    expect(await ask({ host: 'partner-api', 'x-sidecar-key': key })).toBe(200);
    expect(await ask({ host: 'partner-api' })).toBe(403);
    expect(await ask({ host: 'partner-api', 'x-sidecar-key': 'another' })).toBe(403);
    expect(await ask({ host: 'elsewhere', 'x-sidecar-key': key })).toBe(403);
    expect(pod.upstream.requests).toHaveLength(1);
    expect(pod.upstream.requests[0]?.headers).not.toHaveProperty('x-sidecar-key');
  });
});

describe('job-classic', () => {
  /** The example's command, with something else for the work itself. */
  function startWork({ containers }: Pod, report: string, adminPort: number) {
    const [shell = '', ...args] = (containers[0]?.command ?? []).map((word) =>
      word.replace('/app/report', report).replace('19464', String(adminPort)),
    );
    return spawn(shell, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  }

  it.each([0, 7])('the sidecar ends after work that ends with %d', async (code) => {
    await using pod = await startExample('job-classic');
    await untilReady(pod.inside);
    // The work itself: one call of the partner, then its exit code.
    const report = `curl --silent --fail --data {} http://localhost:${String(pod.proxyPort)}/report && (exit ${String(code)})`;
    const child = startWork(pod.pod, report, pod.adminPort);
    const [ended] = (await once(child, 'exit')) as [number];
    expect(ended).toBe(code);
    expect(await pod.process.exit).toEqual({ code: 0, signal: null });
    expect(pod.upstream.requests).toHaveLength(1);
  });

  it('work that ends before the sidecar listens repeats its request until it is accepted', async () => {
    const port = await freePort();
    const [template] = podsOf(kustomizeExample('job-classic'));
    const report = `curl --silent http://localhost:${String(port)}/livez; echo "curl: $?"; (exit 7)`;
    const child = startWork(template!, report, port);
    const ended = once(child, 'exit');
    // The port is closed.
    expect(String(((await once(child.stdout, 'data')) as [Buffer])[0])).toBe('curl: 7\n');
    await using pod = await startExample('job-classic');
    const listener = createServer((socket) => {
      pipeline(socket, connect(pod.adminPort, '127.0.0.1'), socket, () => socket.destroy());
    });
    listener.listen(port, '127.0.0.1');
    onTestFinished(() => {
      listener.close();
    });
    expect(await ended).toEqual([7, null]);
    const exit = await pod.process.exit;
    expect(exit).toEqual({ code: 0, signal: null });
  });
});
