/* A libnvidia-ml.so.1 that plays a recording back.
 *
 * NVML_STUB names the recording, NVML_STUB_TICK says at which sample it stands.
 * Lines of a recording:
 *
 *     count 2                       GPUs of the machine
 *     init 9                        what nvmlInit returns (0 if left out)
 *     slice MIG-5f 1                a MIG slice and the GPU that it is part of
 *     0 uuid GPU-aaaa1111           texts of GPU 0
 *     0 temperature 70 71 - 86      its values, one a sample; the last one holds
 *
 * A value of - is NotSupported, ? is FunctionNotFound, ! is an unknown error. What
 * a recording leaves out is NotSupported. Built with -DOLD_DRIVER it lacks the
 * functions of release 535 and newer, with -DNEW_DRIVER those that CUDA 14 drops.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10,
       NO_FUNCTION = 13, GPU_IS_LOST = 15, UNKNOWN = 999 };
enum { MOST = 16, LINE = 4096, TEXT = 96 };

typedef struct device { int index; int slice_of; char uuid[TEXT]; } *Device;
static struct device gpus[MOST], slices[MOST];
static int registered = -1, delivered = -1;

static int tick(void) {
    const char *text = getenv("NVML_STUB_TICK");
    return text ? atoi(text) : 0;
}

/* Finds the line that begins with `start` and copies what follows it. */
static int line(const char *start, char *rest) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[LINE];
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(text, sizeof text, file)) {
        size_t length = strlen(start);
        if (!strncmp(text, start, length) && text[length] == ' ') {
            strcpy(rest, text + length + 1);
            rest[strcspn(rest, "\n#")] = 0;
            found = 1;
        }
    }
    fclose(file);
    return found;
}

static int number(const char *start, int otherwise) {
    char rest[LINE];
    return line(start, rest) ? (int)strtol(rest, NULL, 0) : otherwise;
}

/* Reads the value of a GPU's field at the present sample. */
static int value(Device device, const char *field, double *out) {
    char start[64], rest[LINE], *word, *last = NULL;
    int left = tick();
    if (device->slice_of >= 0) return NOT_SUPPORTED;
    snprintf(start, sizeof start, "%d lost", device->index);
    if (strcmp(field, "lost") && line(start, rest)) {
        double lost;
        if (value(device, "lost", &lost) == SUCCESS && lost) return GPU_IS_LOST;
    }
    snprintf(start, sizeof start, "%d %s", device->index, field);
    if (!line(start, rest)) return NOT_SUPPORTED;
    for (word = strtok(rest, " "); word; word = strtok(NULL, " ")) {
        last = word;
        if (left-- == 0) break;
    }
    if (!last || !strcmp(last, "-")) return NOT_SUPPORTED;
    if (!strcmp(last, "?")) return NO_FUNCTION;
    if (!strcmp(last, "!")) return UNKNOWN;
    *out = last[0] == '0' && last[1] == 'x' ? (double)strtol(last, NULL, 16) : atof(last);
    return SUCCESS;
}

static int as_unsigned(Device device, const char *field, unsigned *out) {
    double found = 0;
    int code = value(device, field, &found);
    if (code == SUCCESS) *out = (unsigned)found;
    return code;
}

static void text(Device device, const char *field, char *out, unsigned size) {
    char start[64], rest[LINE];
    snprintf(start, sizeof start, "%d %s", device->index, field);
    snprintf(out, size, "%.*s", (int)size - 1, line(start, rest) ? rest : "");
}

/* ------------------------------------------------------------- the library */

int nvmlInitWithFlags(unsigned flags) { (void)flags; return number("init", SUCCESS); }
int nvmlInit_v2(void) { return number("init", SUCCESS); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the stub"; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)number("count", 1);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *out) {
    if (index >= (unsigned)number("count", 1)) return INVALID;
    gpus[index].index = (int)index;
    gpus[index].slice_of = -1;
    *out = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetUUID(Device device, char *out, unsigned size) {
    double lost = 0;
    if (value(device, "lost", &lost) == SUCCESS && lost) return GPU_IS_LOST;
    text(device, "uuid", out, size);
    return SUCCESS;
}

int nvmlDeviceGetName(Device device, char *out, unsigned size) {
    text(device, "model", out, size);
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *out) {
    char start[TEXT + 8], rest[LINE], found[TEXT];
    unsigned index;
    snprintf(start, sizeof start, "slice %s", uuid);
    if (line(start, rest)) {
        slices[0].index = 0;
        slices[0].slice_of = atoi(rest);
        *out = &slices[0];
        return SUCCESS;
    }
    for (index = 0; index < (unsigned)number("count", 1); index++) {
        nvmlDeviceGetHandleByIndex_v2(index, out);
        text(*out, "uuid", found, sizeof found);
        if (!strcmp(found, uuid)) return SUCCESS;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device *out) {
    if (device->slice_of < 0) return INVALID;
    return nvmlDeviceGetHandleByIndex_v2((unsigned)device->slice_of, out);
}

/* -------------------------------------------------------------- the values */

typedef struct { unsigned version; int sensor; int temperature; } TemperatureV;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned long long reference, violation; } Violation;
typedef struct { Device device; unsigned long long type, data; unsigned gi, ci; } Event;

#ifndef OLD_DRIVER
int nvmlDeviceGetTemperatureV(Device device, TemperatureV *out) {
    unsigned found;
    int code = as_unsigned(device, "temperature", &found);
    if (code == SUCCESS) out->temperature = (int)found;
    return code;
}
int nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *out) {
    unsigned found;
    int code = as_unsigned(device, "reasons", &found);
    if (code == SUCCESS) *out = found;
    return code;
}
#endif

#ifndef NEW_DRIVER
int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *out) {
    (void)sensor;
    return as_unsigned(device, "temperature", out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *out) {
    unsigned found;
    int code = as_unsigned(device, "reasons", &found);
    if (code == SUCCESS) *out = found;
    return code;
}
int nvmlDeviceGetViolationStatus(Device device, int policy, Violation *out) {
    double seconds = 0;
    int code = value(device, "throttled", &seconds);
    if (policy != 1) return NOT_SUPPORTED;
    if (code == SUCCESS) out->violation = (unsigned long long)(seconds * 1e9);
    return code;
}
#endif

int nvmlDeviceGetClockInfo(Device device, int kind, unsigned *out) {
    return kind == 1 ? as_unsigned(device, "clock", out) : INVALID;
}

int nvmlDeviceGetUtilizationRates(Device device, Utilization *out) {
    return as_unsigned(device, "utilization", &out->gpu);
}

int nvmlDeviceGetPowerUsage(Device device, unsigned *out) {
    return as_unsigned(device, "milliwatts", out);
}

int nvmlDeviceGetMemoryInfo(Device device, Memory *out) {
    double found = 0;
    int code = value(device, "memory", &found);
    if (code == SUCCESS) {
        out->total = 150000000000ull;
        out->used = (unsigned long long)found;
        out->free = out->total - out->used;
    }
    return code;
}

int nvmlDeviceGetTotalEccErrors(Device device, int kind, int since,
                                unsigned long long *out) {
    unsigned found;
    int code = as_unsigned(device, "ecc", &found);
    if (kind != 1 || since != 0) return INVALID;
    if (code == SUCCESS) *out = found;
    return code;
}

/* -------------------------------------------------------------- the events */

int nvmlEventSetCreate(void **out) { static int set; *out = &set; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; registered = -1; return SUCCESS; }

int nvmlDeviceRegisterEvents(Device device, unsigned long long types, void *set) {
    double found;
    int code = value(device, "xid", &found);
    (void)set;
    if (!(types & 8)) return INVALID;
    if (code == SUCCESS) registered = device->index;
    delivered = -1;
    return code;
}

/* Gives the XID of the present sample once; 0 is none. */
int nvmlEventSetWait_v2(void *set, Event *out, unsigned milliseconds) {
    double found = 0;
    int code;
    (void)set;
    (void)milliseconds;
    if (registered < 0) return INVALID;
    code = value(&gpus[registered], "xid", &found);
    if (code != SUCCESS) return code;
    if (!found || delivered == tick()) return TIMEOUT;
    delivered = tick();
    memset(out, 0, sizeof *out);
    out->type = 8;
    out->data = (unsigned long long)found;
    return SUCCESS;
}
