/**
 * What a stage asks of the place where it runs, beyond a plain process; checked, and in the units of those who run it. `Text`
 * is what a value of an environment is: a template in a definition, its text in a job.
 */

export interface ImageDefinition {
  readonly name: string;
  readonly entrypoint?: readonly string[] | undefined;
  readonly user?: string | undefined;
  /** Default `missing`. */
  readonly pull?: 'missing' | 'always' | undefined;
  /** The name of the secret that its registry asks for; absent: everybody may pull it. */
  readonly secret?: string | undefined;
}

/** A container beside the stage, reached by its name. */
export interface ServiceDefinition<Text> {
  readonly name: string;
  readonly image: ImageDefinition;
  readonly env: Readonly<Record<string, Text>>;
  /** A shell command that succeeds inside the service once it may be used. */
  readonly ready?: string | undefined;
  readonly readyTimeoutMs?: number | undefined;
}

export interface ResourcesDefinition {
  /** Processors, also a part of one. */
  readonly cpu?: number | undefined;
  readonly memoryBytes?: number | undefined;
}

export interface PlaceDefinition<Text> {
  readonly image?: ImageDefinition | undefined;
  readonly services?: readonly ServiceDefinition<Text>[] | undefined;
  readonly resources?: ResourcesDefinition | undefined;
  readonly network?: 'none' | undefined;
}
