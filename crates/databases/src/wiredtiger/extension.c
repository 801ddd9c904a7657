/*
 * WiredTiger only accepts an encryptor from a shared object that it loads before it reads anything. This is that
 * object: it calls back into Tithe, which has set the pointer. If the pointer is not set, the engine does not open.
 */
int (*tithe_hook)(void *connection, void *config);

int wiredtiger_extension_init(void *connection, void *config)
{
    return tithe_hook == 0 ? 1 : tithe_hook(connection, config);
}
