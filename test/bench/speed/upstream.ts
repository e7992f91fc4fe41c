/** The upstream of every proxy: one nginx worker that responds from memory after it has read the body, plain and with TLS. */
import { writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeCertificates } from '../../support/certificates.ts';
import { freePort } from '../../support/loopback.ts';
import { CORES, launch } from './processes.ts';
import { waitUntilResponding } from './ready.ts';

const RESPONSE_BYTES = 500;
/** Statuses of `/code/STATUS`: none of them has a meaning for a proxy. */
export const CODES: readonly number[] = [...numbersFrom(210, 90), ...numbersFrom(310, 60)];
const DOWNLOAD_BYTES = 1024 * 1024;

export interface BenchmarkUpstream {
  readonly plainUrl: string;
  readonly tlsUrl: string;
  /** PEM file of the authority that has signed the TLS side. */
  readonly caFile: string;
  /** Responses so far. */
  readonly countResponses: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

/**
 * @param folder for its files; the caller removes it
 * @param witnessUrl where requests for `/witness` are passed on to
 */
export async function startUpstream(folder: string, witnessUrl: string): Promise<BenchmarkUpstream> {
  const [plainPort, tlsPort] = [await freePort(), await freePort()];
  const certificates = makeCertificates();
  const files = join(folder, 'files');
  mkdirSync(files);
  const response = `{"id":"q-1","text":"${'x'.repeat(RESPONSE_BYTES - 21)}"}`;
  writeFileSync(join(files, 'post'), response);
  writeFileSync(join(files, 'response'), response);
  writeFileSync(join(files, 'download'), Buffer.alloc(DOWNLOAD_BYTES, 'x'));
  const { certificateFile, keyFile } = certificates.serverFiles;
  const listen = `listen 127.0.0.1:${plainPort} backlog=4096; listen 127.0.0.1:${tlsPort} ssl backlog=4096;
    ssl_certificate ${certificateFile}; ssl_certificate_key ${keyFile};`;
  writeFileSync(join(folder, 'upstream.conf'), configuration({ folder, files, listen, response, witnessUrl }));
  const errors = join(folder, 'upstream-error.log');
  const nginx = launch(['nginx', '-p', folder, '-c', 'upstream.conf', '-e', errors], { core: CORES.upstream });
  const plainUrl = `http://127.0.0.1:${plainPort}`;
  await waitUntilResponding(`${plainUrl}/item`, nginx.hasEnded);
  return {
    plainUrl,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    caFile: certificates.caFile,
    countResponses: async () => {
      const text = await (await fetch(`${plainUrl}/count`)).text();
      return Number(/^ \d+ \d+ (\d+) $/m.exec(text)?.[1] ?? NaN);
    },
    stop: async () => {
      await nginx.stop();
      certificates[Symbol.dispose]();
    },
  };
}

interface ConfigurationValues {
  readonly folder: string;
  readonly files: string;
  readonly listen: string;
  readonly response: string;
  readonly witnessUrl: string;
}

/**
 * A body is read whole before the response, which `return` alone would not do: a mirror needs the whole of it, and what it is
 * mirrored to does nothing. The static file then accepts no POST, which gives the response.
 */
function configuration({ folder, files, listen, response, witnessUrl }: ConfigurationValues): string {
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; worker_processes 1; worker_rlimit_nofile 16384; pid ${folder}/upstream.pid;
    events { worker_connections 8192; }
    http {
      access_log off; default_type application/json; sendfile on; tcp_nopush on;
      client_body_temp_path ${folder}/upstream-bodies; client_body_buffer_size 128k;
      keepalive_requests 1000000000; keepalive_timeout 3600s; open_file_cache max=10 inactive=3600s;
      server {
        ${listen}
        root ${files};
        location = /item { return 200 '${response}'; }
        location = /post { mirror /nowhere; error_page 405 =200 /response; }
        ${CODES.map((code) => `location = /code/${code} { return ${code} '${response}'; }`).join('\n        ')}
        location = /witness { proxy_pass ${witnessUrl}; proxy_http_version 1.1; proxy_set_header Connection ''; }
        location = /count { stub_status; }
        location = /nowhere { internal; return 204; }
      }
    }
  `;
}

function numbersFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index);
}
