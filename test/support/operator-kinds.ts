/**
 * Kinds of operators and network plugins that the examples use, with the part of their published schemas that an example may fill in: a field
 * that is not here is refused. Sources: the CustomResourceDefinitions of kubernetes-sigs/secrets-store-csi-driver (v1),
 * external-secrets/external-secrets (v1) and cilium/cilium (v2).
 */
import { Ajv } from 'ajv';
import type { ValidateFunction } from 'ajv';
import type { KubernetesObject } from './manifests.ts';

const text = { type: 'string', minLength: 1 } as const;
const texts = { type: 'object', additionalProperties: { type: 'string' } } as const;
const closed = (properties: object, required: readonly string[]) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
});
const list = (items: object) => ({ type: 'array', minItems: 1, items });

const secretProviderClass = closed(
  { provider: { enum: ['vault', 'azure', 'aws', 'gcp'] }, parameters: texts, secretObjects: list({ type: 'object' }) },
  ['provider'],
);

const externalSecret = closed(
  {
    refreshInterval: { type: 'string', pattern: '^([0-9]+(s|m|h))+$' },
    secretStoreRef: closed({ name: text, kind: { enum: ['SecretStore', 'ClusterSecretStore'] } }, ['name']),
    target: closed({ name: text, creationPolicy: { enum: ['Owner', 'Orphan', 'Merge', 'None'] } }, []),
    data: list(
      closed({ secretKey: text, remoteRef: closed({ key: text, property: text, version: text }, ['key']) }, [
        'secretKey',
        'remoteRef',
      ]),
    ),
  },
  ['secretStoreRef'],
);

const ports = list(
  closed({ port: { type: 'string', pattern: '^[0-9]{1,5}$' }, protocol: { enum: ['TCP', 'UDP', 'ANY'] } }, ['port']),
);
const name = { type: 'object', additionalProperties: false, properties: { matchName: text, matchPattern: text } };
const selector = closed({ matchLabels: texts }, []);
const ciliumNetworkPolicy = closed(
  {
    endpointSelector: selector,
    egress: list(
      closed(
        {
          toEndpoints: list(selector),
          toFQDNs: list(name),
          toPorts: list(closed({ ports, rules: closed({ dns: list(name) }, []) }, ['ports'])),
        },
        [],
      ),
    ),
  },
  ['endpointSelector'],
);

const ajv = new Ajv({ strict: true, strictTypes: false });
const validators: ReadonlyMap<string, ValidateFunction> = new Map([
  ['secrets-store.csi.x-k8s.io/v1 SecretProviderClass', ajv.compile(secretProviderClass)],
  ['external-secrets.io/v1 ExternalSecret', ajv.compile(externalSecret)],
  ['cilium.io/v2 CiliumNetworkPolicy', ajv.compile(ciliumNetworkPolicy)],
]);

const validatorOf = ({ apiVersion, kind }: KubernetesObject) => validators.get(`${apiVersion} ${kind}`);

/** Whether the object is of one of these kinds. */
export function isOperatorKind(object: KubernetesObject): boolean {
  return validatorOf(object) !== undefined;
}

/** What the schema says of its specification, one line for each fault. */
export function findOperatorKindFaults(object: KubernetesObject): string[] {
  const validate = validatorOf(object);
  if (validate === undefined || validate(object.spec)) return [];
  return (validate.errors ?? []).map(({ instancePath, message = '' }) => `spec${instancePath} ${message}`);
}
